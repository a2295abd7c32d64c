mod driver;
mod metrics;
mod planner;
mod property;
mod service;
