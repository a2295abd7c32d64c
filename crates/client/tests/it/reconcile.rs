mod driver;
mod emulator;
mod metrics;
mod month;
mod planner;
mod property;
mod service;
