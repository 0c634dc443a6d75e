//! TLS: who vouches for a server, and what is wrong where nobody does.

use std::io;
use std::sync::Arc;

use banister_events::text;
use jiff::Timestamp;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::HttpError;

/// How much is shown of the names in a certificate.
const NAMES_CHARS: usize = 120;

const TRUST: &str = "if you trust it, put the certificate of who issued it into a PEM file and name that with \
                     SSL_CERT_FILE, or with `ca` of an upstream";
const NAME: &str = "use a name that it is for, or have one issued for this host";
const RENEW: &str = "have it renewed, or see whether the clock of this machine is right";
const CLOCK: &str = "see whether the clock of this machine is right";
const REISSUE: &str = "have another one issued";

/// Who may vouch for a server.
#[derive(Debug, Clone)]
pub(super) enum Authorities {
    /// Whom the platform trusts.
    Platform,
    /// Whom the caller names, and nobody else.
    Given(Arc<ClientConfig>),
}

/// The platform's authorities are hundreds of certificates: they are read once for a process.
static PLATFORM: OnceCell<Arc<ClientConfig>> = OnceCell::const_new();

impl Authorities {
    pub(super) fn from_pem(pem: &[u8]) -> Result<Self, HttpError> {
        let wrong = |why: String| HttpError::NoAuthorities(why);
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate =
                certificate.map_err(|error| wrong(format!("this is no PEM file: {error}")))?;
            roots.add(certificate).map_err(|error| {
                wrong(format!("a certificate in the PEM file cannot be used: {error}"))
            })?;
        }
        if roots.is_empty() {
            return Err(wrong("the PEM file has no certificate".to_owned()));
        }
        Ok(Self::Given(config(roots)?))
    }

    pub(super) async fn config(&self) -> Result<Arc<ClientConfig>, HttpError> {
        match self {
            Self::Given(config) => Ok(Arc::clone(config)),
            Self::Platform => PLATFORM.get_or_try_init(platform).await.cloned(),
        }
    }
}

async fn platform() -> Result<Arc<ClientConfig>, HttpError> {
    let read = || {
        let loaded = rustls_native_certs::load_native_certs();
        let mut roots = RootCertStore::empty();
        // Platforms keep certificates that nobody can use; the others count.
        roots.add_parsable_certificates(loaded.certs);
        if roots.is_empty() {
            let why = loaded.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
            return Err(HttpError::NoAuthorities(format!(
                "this machine has no certificates of authorities{why}; install them, or name a PEM file with \
                 SSL_CERT_FILE"
            )));
        }
        config(roots)
    };
    let stopped = |error| HttpError::NoAuthorities(format!("{error}"));
    tokio::task::spawn_blocking(read).await.map_err(stopped)?
}

fn config(roots: RootCertStore) -> Result<Arc<ClientConfig>, HttpError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| HttpError::NoAuthorities(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Speaks TLS over a connection, once the server has proved that it is `authority`, a host and a port.
pub(super) async fn wrap(
    stream: TcpStream,
    authority: &str,
    config: Arc<ClientConfig>,
) -> Result<TlsStream<TcpStream>, HttpError> {
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = ServerName::try_from(bare).map_err(|_| HttpError::Handshake {
        host: host.to_owned(),
        problem: "no certificate can be for such a name".to_owned(),
    })?;
    let connected = TlsConnector::from(config).connect(name, stream).await;
    connected.map_err(|error| explained(host, &error))
}

fn explained(host: &str, error: &io::Error) -> HttpError {
    let host = host.to_owned();
    let handshake = |problem: String| HttpError::Handshake { host: host.clone(), problem };
    let Some(cause) = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>())
    else {
        let hung_up = error.kind() == io::ErrorKind::UnexpectedEof;
        let hung_up = hung_up.then_some("it hung up on the first message; does it speak TLS?");
        return handshake(hung_up.map_or_else(|| error.to_string(), str::to_owned));
    };
    match cause {
        rustls::Error::InvalidCertificate(wrong) => {
            let (problem, remedy) = verdict(wrong);
            HttpError::Certificate { host, problem, remedy }
        }
        rustls::Error::InvalidMessage(_) => HttpError::NotTls { host },
        other => handshake(other.to_string()),
    }
}

/// What is wrong with a certificate, as the end of a sentence about it, and what to do.
fn verdict(wrong: &CertificateError) -> (String, &'static str) {
    match wrong {
        CertificateError::Expired => ("has expired".to_owned(), RENEW),
        CertificateError::ExpiredContext { not_after, .. } => {
            (format!("expired on {}", day(*not_after)), RENEW)
        }
        CertificateError::NotValidYet => ("is not valid yet".to_owned(), CLOCK),
        CertificateError::NotValidYetContext { not_before, .. } => {
            (format!("is not valid before {}", day(*not_before)), CLOCK)
        }
        CertificateError::NotValidForName => ("is for another name".to_owned(), NAME),
        CertificateError::NotValidForNameContext { presented, .. } => {
            (format!("is for {}", names(presented)), NAME)
        }
        CertificateError::UnknownIssuer => {
            ("was issued by nobody whom this machine trusts".to_owned(), TRUST)
        }
        CertificateError::BadSignature => {
            ("is signed by somebody else than the authority that it names".to_owned(), TRUST)
        }
        CertificateError::Other(_) => (format!("cannot be used ({wrong})"), REISSUE),
        other => (format!("does not verify ({other})"), REISSUE),
    }
}

/// The names in a certificate, which somebody unknown has written.
fn names(presented: &[String]) -> String {
    // Each comes as `DnsName("…")` or `IpAddress(…)`.
    let name = |text: &String| {
        let inner = text.split_once('(').map_or(text.as_str(), |(_, inner)| inner);
        inner.trim_end_matches(')').trim_matches('"').to_owned()
    };
    let all: Vec<String> = presented.iter().map(name).collect();
    if all.is_empty() {
        return "no name at all".to_owned();
    }
    text::shorten(&text::one_line(&all.join(", ")), NAMES_CHARS).into_owned()
}

fn day(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    let time = Timestamp::from_second(seconds);
    time.map_or_else(
        |_| "a day without a name".to_owned(),
        |it| it.strftime("%Y-%m-%d").to_string(),
    )
}
