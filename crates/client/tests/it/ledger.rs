mod contract;
mod emulator;
mod outcomes;
mod service;
mod values;
