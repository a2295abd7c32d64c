//! `hookgate replay`: a log is delivered again to a server over TCP.

mod command;
#[allow(dead_code)] // shared with the tests of the library
#[path = "../../../testing/tests/it/replay/made.rs"]
mod made;

use hookgate_record::LoggedDelivery;
use hookgate_testing::DeliveryLog;

use made::*;
