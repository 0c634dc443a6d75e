//! Where a gateway listens.

use std::fmt;
use std::path::PathBuf;

use http::uri::Authority;

use crate::error::{Error, Result};

/// A gateway's address.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Endpoint {
    /// A Unix socket.
    Unix(PathBuf),
    /// `host:port`, spoken to without TLS.
    Http(String),
}

impl Endpoint {
    /// Reads `unix:/path` or `http://host:port`. Without a port it is 80.
    pub fn parse(text: &str) -> Result<Self> {
        let invalid = || Error::Endpoint { given: text.escape_debug().to_string() };
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.starts_with('/') {
                Ok(Self::Unix(path.into()))
            } else {
                Err(invalid())
            };
        }
        let rest = text.strip_prefix("http://").ok_or_else(invalid)?;
        let authority: Authority =
            rest.strip_suffix('/').unwrap_or(rest).parse().map_err(|_| invalid())?;
        if authority.host().is_empty() || authority.as_str().contains('@') {
            return Err(invalid());
        }
        match authority.port() {
            // What stands behind the colon has to be a port, or there is to be no colon.
            Some(port) if port.as_u16() > 0 => Ok(Self::Http(authority.to_string())),
            None if authority.as_str() == authority.host() => {
                Ok(Self::Http(format!("{authority}:80")))
            }
            _ => Err(invalid()),
        }
    }

    /// The `Host` header for requests to this endpoint.
    pub(crate) fn host(&self) -> &str {
        match self {
            Self::Unix(_) => "banister",
            Self::Http(authority) => authority,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Http(authority) => write!(f, "http://{authority}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_written_as_they_are_read() {
        for text in ["unix:/run/user/1000/banister.sock", "http://127.0.0.1:7717", "http://[::1]:1"]
        {
            assert_eq!(Endpoint::parse(text).expect(text).to_string(), text);
        }
        let short = Endpoint::parse("http://localhost/").expect("an endpoint");
        assert_eq!(short, Endpoint::Http("localhost:80".into()));
    }

    #[test]
    fn other_texts_are_no_endpoints() {
        for text in [
            "",
            "unix:",
            "unix:relative",
            "127.0.0.1:7717",
            "https://h:1",
            "http://",
            "http://h:x",
            "http://h:99999",
            "http://h:0",
            "http://h:",
            "http://me@h:1",
            "http://h:1/path",
            "http://a b:1",
        ] {
            let error = Endpoint::parse(text).expect_err(text).to_string();
            assert!(error.contains("unix:/path or http://host:port"), "{error}");
        }
    }
}
