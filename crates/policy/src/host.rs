//! Hosts, out of URLs, compared by their labels.

/// The host of a URL, in lower case; `None` if it is not known.
pub(crate) fn of_url(text: &str) -> Option<String> {
    let rest = match text.split_once("://") {
        Some((scheme, rest))
            if scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)) =>
        {
            rest
        }
        Some(_) => return None,
        // Programs take `example.org/x` for a URL too.
        None => text,
    };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let host = match host.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let is_host =
        !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || ".-_:".contains(c));
    is_host.then_some(host)
}

/// Whether a host is a name, or lies below it where the pattern starts with `*.`.
pub(crate) fn fits(pattern: &str, host: &str) -> bool {
    match pattern.strip_prefix("*.") {
        Some(parent) => host
            .strip_suffix(parent)
            .and_then(|rest| rest.strip_suffix('.'))
            .is_some_and(|below| !below.is_empty()),
        None => pattern.eq_ignore_ascii_case(host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_what_a_client_connects_to() {
        for (url, host) in [
            ("https://example.org/x", Some("example.org")),
            ("https://Example.org:8080?x", Some("example.org")),
            ("https://good.org@evil.org/", Some("evil.org")),
            ("https://good.org.evil.org/", Some("good.org.evil.org")),
            ("https://evil.org\\@good.org/", Some("evil.org")),
            ("http://[::1]:80/", Some("::1")),
            ("example.org/x", Some("example.org")),
            ("https://\0.org/", None),
            ("https:///x", None),
        ] {
            assert_eq!(of_url(url).as_deref(), host, "{url}");
        }
        assert!(fits("example.org", "example.org") && fits("*.example.org", "a.example.org"));
        assert!(!fits("*.example.org", "example.org") && !fits("*.example.org", "evilexample.org"));
        assert!(!fits("example.org", "example.org.evil.org"));
    }
}
