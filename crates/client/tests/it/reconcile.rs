mod driver;
mod emulator;
mod metrics;
mod planner;
mod property;
mod service;
