//! The client against a real HTTP server, on a Unix socket and on TCP.
#![cfg(unix)]

#[cfg(test)]
mod requests;
#[cfg(test)]
mod server;
#[cfg(test)]
mod streams;
