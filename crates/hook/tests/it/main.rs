//! The hook against real sockets, real pipes and as a real process.
#![cfg(unix)]

#[cfg(test)]
mod binary;
#[cfg(test)]
mod library;
#[cfg(test)]
mod support;
