mod driver;
mod planner;
mod property;
mod service;
