//! The client against real servers, on Unix sockets and on TCP.
#![cfg(unix)]
#![expect(
    clippy::disallowed_methods,
    reason = "the test's own server runs beside the test, and ends with it"
)]

#[cfg(test)]
mod agui;
#[cfg(test)]
mod emit;
#[cfg(test)]
mod feed;
#[cfg(test)]
mod peer;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod server;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod tls;
