//! The client against a real HTTP server, on a Unix socket and on TCP.
#![cfg(unix)]
#![expect(
    clippy::disallowed_methods,
    reason = "the test's own server runs beside the test, and ends with it"
)]

#[cfg(test)]
mod requests;
#[cfg(test)]
mod server;
#[cfg(test)]
mod streams;
