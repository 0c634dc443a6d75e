//! Where something listens: a gateway, or any other service that speaks HTTP.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use http::Uri;
use http::uri::Authority;
use serde::Deserialize;

use crate::error::{Error, Result};

/// Where to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Endpoint {
    /// A Unix socket.
    Unix(PathBuf),
    /// `host:port`, spoken to without TLS.
    Http(String),
    /// `host:port`, spoken to in TLS.
    Https(String),
}

impl Endpoint {
    /// Reads `unix:/path`, `http://host:port` or `https://host:port`. Without a port it is 80, or 443 with TLS.
    pub fn parse(text: &str) -> Result<Self> {
        let invalid = || Error::Endpoint { given: text.escape_debug().to_string() };
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.starts_with('/') {
                Ok(Self::Unix(path.into()))
            } else {
                Err(invalid())
            };
        }
        let (scheme, rest) = text.split_once("://").ok_or_else(invalid)?;
        let authority = rest.strip_suffix('/').unwrap_or(rest).parse().map_err(|_| invalid())?;
        Self::of(scheme, &authority).map_err(|_| invalid())
    }

    fn of(scheme: &str, authority: &Authority) -> Result<Self, AddressError> {
        let (endpoint, port): (fn(String) -> Self, _) = match scheme {
            "http" => (Self::Http, 80),
            "https" => (Self::Https, 443),
            _ => return Err(AddressError::Scheme),
        };
        if authority.as_str().contains('@') {
            return Err(AddressError::User);
        }
        if authority.host().is_empty() {
            return Err(AddressError::NoHost);
        }
        match authority.port() {
            // What stands behind the colon has to be a port, or there is to be no colon.
            Some(port) if port.as_u16() > 0 => Ok(endpoint(authority.to_string())),
            None if authority.as_str() == authority.host() => {
                Ok(endpoint(format!("{authority}:{port}")))
            }
            _ => Err(AddressError::Port),
        }
    }

    /// The `Host` header for requests to this endpoint: the usual port is not named.
    pub(crate) fn host(&self) -> &str {
        match self {
            Self::Unix(_) => "banister",
            Self::Http(authority) => authority.strip_suffix(":80").unwrap_or(authority),
            Self::Https(authority) => authority.strip_suffix(":443").unwrap_or(authority),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Http(authority) => write!(f, "http://{authority}"),
            Self::Https(authority) => write!(f, "https://{authority}"),
        }
    }
}

/// The URL of a service: where it listens, and the path there.
///
/// ```
/// use banister_client::{Address, Endpoint};
/// let address: Address = "https://agent.example/run?x=1".parse()?;
/// assert_eq!(address.endpoint(), &Endpoint::Https("agent.example:443".to_owned()));
/// assert_eq!(address.path(), "/run?x=1");
/// # Ok::<(), banister_client::AddressError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Address {
    endpoint: Endpoint,
    path: String,
}

/// Why a text is no [`Address`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// It is no URL at all.
    #[error("this is no URL")]
    NotUrl,
    /// It begins with something else.
    #[error("a URL here begins with http:// or https://")]
    Scheme,
    /// There is nobody to connect to.
    #[error("the URL names no host")]
    NoHost,
    /// The port is none.
    #[error("the URL names a port that is none")]
    Port,
    /// URLs are logged and shown.
    #[error("a URL here has no user; keys belong in headers")]
    User,
}

impl Address {
    /// Where it listens.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The path with its query.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        Self::try_from(&text.parse::<Uri>().map_err(|_| AddressError::NotUrl)?)
    }
}

impl TryFrom<String> for Address {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, AddressError> {
        text.parse()
    }
}

impl TryFrom<&Uri> for Address {
    type Error = AddressError;

    fn try_from(uri: &Uri) -> Result<Self, AddressError> {
        let scheme = uri.scheme_str().ok_or(AddressError::Scheme)?;
        let authority = uri.authority().ok_or(AddressError::NoHost)?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(Self { endpoint: Endpoint::of(scheme, authority)?, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_written_as_they_are_read() {
        for text in [
            "unix:/run/user/1000/banister.sock",
            "http://127.0.0.1:7717",
            "http://[::1]:1",
            "https://h:1",
        ] {
            assert_eq!(Endpoint::parse(text).expect(text).to_string(), text);
        }
        let short = Endpoint::parse("http://localhost/").expect("an endpoint");
        assert_eq!((short.host(), &short), ("localhost", &Endpoint::Http("localhost:80".into())));
        let tls = Endpoint::parse("https://[::1]").expect("an endpoint");
        assert_eq!((tls.host(), &tls), ("[::1]", &Endpoint::Https("[::1]:443".into())));
    }

    #[test]
    fn other_texts_are_no_endpoints() {
        for text in [
            "",
            "unix:",
            "unix:relative",
            "127.0.0.1:7717",
            "ftp://h:1",
            "https://",
            "https://h:x",
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
            assert!(error.contains("unix:/path, http://host:port or https://host"), "{error}");
        }
    }

    #[test]
    fn a_text_that_is_no_address_is_told_why() {
        for (text, why) in [
            ("a b", AddressError::NotUrl),
            ("/agent", AddressError::Scheme),
            ("ws://h/agent", AddressError::Scheme),
            ("http://me:secret@h/agent", AddressError::User),
            ("https://h:99999/agent", AddressError::Port),
            ("http://:1/agent", AddressError::NoHost),
        ] {
            assert_eq!(text.parse::<Address>(), Err(why), "{text}");
        }
        let bare: Address = "http://h".parse().expect("an address");
        assert_eq!(bare.path(), "/");
    }
}
