//! Who listens at the doors of the suite.

use std::sync::Mutex;

use tokio::sync::{mpsc, watch};

use crate::subscriptions::table::StreamOrder;

/// The doors of the suite, where they are open.
#[derive(Debug)]
pub(crate) struct Suite {
    pub(super) lines: Mutex<Vec<mpsc::Sender<StreamOrder>>>,
    /// How many lines there are.
    pub(super) count: watch::Sender<usize>,
}
