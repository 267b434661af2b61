//! Whom a connection comes from: this machine, a reverse proxy that the owner named, or somebody else.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::header::{AUTHORIZATION, COOKIE, HOST, HeaderName};
use axum::http::{HeaderValue, StatusCode};

use super::answer::Refusal;
use annals_core::{Error, Result};

/// The proxies that are trusted, and what they may say.
pub(super) struct Network {
    proxies: Vec<Addresses>,
    user_header: Option<HeaderName>,
}

/// The other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer {
    pub address: IpAddr,
    pub is_encrypted: bool,
}

/// The member that a proxy names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedUser(pub String);

impl Network {
    pub fn new(proxies: &[String], user_header: Option<&str>) -> Result<Network> {
        let proxies: Vec<Addresses> =
            proxies.iter().map(|text| Addresses::parse(text)).collect::<Result<_>>()?;
        let user_header = user_header.map(parse_header).transpose()?;
        if user_header.is_some() && proxies.is_empty() {
            return Err(Error::new("a header names users, and no proxy is trusted to send it")
                .hint("annals serve --trust-proxy 10.0.0.2 --user-header X-Forwarded-User"));
        }
        Ok(Network { proxies, user_header })
    }

    pub fn has_proxies(&self) -> bool {
        !self.proxies.is_empty()
    }

    /// Removes what only a proxy may send, and returns the user that it names.
    pub fn admit(&self, request: &mut Request) -> std::result::Result<Option<NamedUser>, Refusal> {
        let peer = request.extensions().get::<Peer>().copied();
        let is_proxy = peer.is_some_and(|peer| self.is_proxy(peer.address));
        let is_encrypted = peer.is_some_and(|peer| peer.is_encrypted);
        let headers = request.headers_mut();
        if is_encrypted {
            headers.insert("x-forwarded-proto", HeaderValue::from_static("https"));
        }
        let mut users = Vec::new();
        if let Some(name) = &self.user_header {
            users.extend(headers.get_all(name).iter().cloned());
            headers.remove(name);
        }
        let is_local = peer.is_some_and(|peer| peer.address.to_canonical().is_loopback());
        if !is_encrypted && !is_proxy && !is_local {
            return Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "plain HTTP is answered on loopback and to the named proxies only",
            )
            .hint("use the address of the reverse proxy, with https://"));
        }
        match users.as_slice() {
            _ if !is_proxy => Ok(None),
            [] => Ok(None),
            [user] => {
                let user = std::str::from_utf8(user.as_bytes()).unwrap_or_default().trim();
                Ok(Some(NamedUser(user.to_owned())).filter(|user| !user.0.is_empty()))
            }
            // Whoever is behind the proxy may have sent one of them.
            [_, _, ..] => Err(Refusal::new(StatusCode::FORBIDDEN, "the proxy names more than one user")),
        }
    }

    fn is_proxy(&self, address: IpAddr) -> bool {
        self.proxies.iter().any(|proxies| proxies.contain(address))
    }
}

/// Headers with another meaning cannot name users.
fn parse_header(text: &str) -> Result<HeaderName> {
    let name = HeaderName::try_from(text).ok().filter(|name| ![AUTHORIZATION, COOKIE, HOST].contains(name));
    name.ok_or_else(|| {
        Error::new(format!("invalid header for users: {text:?}"))
            .hint("annals serve --user-header X-Forwarded-User")
    })
}

/// One address, or a network such as 172.18.0.0/16.
#[derive(Debug, Clone, Copy)]
struct Addresses {
    first: IpAddr,
    /// Bits that are the same.
    bits: u32,
}

impl Addresses {
    fn parse(text: &str) -> Result<Addresses> {
        let unclear = || {
            Error::new(format!("invalid address of a proxy: {text:?}"))
                .hint("name an IP address or a network: --trust-proxy 10.0.0.2, --trust-proxy 172.18.0.0/16")
        };
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let first: IpAddr = address.trim().parse().map_err(|_| unclear())?;
        let most = if first.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Some(most), |bits| bits.parse().ok().filter(|bits| (1..=most).contains(bits)));
        Ok(Addresses { first, bits: bits.ok_or_else(unclear)? })
    }

    fn contain(&self, address: IpAddr) -> bool {
        match (self.first, address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(other)) => {
                (first.to_bits() ^ other.to_bits()).leading_zeros() >= self.bits
            }
            (IpAddr::V6(first), IpAddr::V6(other)) => {
                (first.to_bits() ^ other.to_bits()).leading_zeros() >= self.bits
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Addresses, NamedUser, Network, Peer};
    use axum::body::Body;
    use axum::extract::Request;

    fn request(peer: &str, is_encrypted: bool, users: &[&str]) -> Request {
        let mut request = Request::builder();
        for user in users {
            request = request.header("X-User", *user);
        }
        let mut request = request.body(Body::empty()).unwrap();
        request.extensions_mut().insert(Peer { address: peer.parse().unwrap(), is_encrypted });
        request
    }

    #[test]
    fn only_the_proxy_names_users_and_plain_http_ends_here() {
        let network = Network::new(&["10.0.0.2".to_owned()], Some("x-user")).unwrap();
        let named = |peer: &str, is_encrypted, users: &[&str]| {
            let mut request = request(peer, is_encrypted, users);
            let user = network.admit(&mut request);
            assert!(!request.headers().contains_key("x-user"), "{peer}");
            user.map_err(|refusal| refusal.status.as_u16())
        };
        let ada = || Some(NamedUser("ada".to_owned()));
        assert_eq!(named("10.0.0.2", false, &["ada"]), Ok(ada()));
        assert_eq!(named("::ffff:10.0.0.2", true, &[" ada "]), Ok(ada()));
        assert_eq!(named("10.0.0.2", false, &[]), Ok(None));
        assert_eq!(named("10.0.0.2", false, &["ada", "mary"]), Err(403));
        for (peer, is_encrypted) in [("127.0.0.1", false), ("::1", false), ("10.0.0.3", true)] {
            assert_eq!(named(peer, is_encrypted, &["ada"]), Ok(None), "{peer}");
        }
        assert_eq!(named("10.0.0.3", false, &["ada"]), Err(403));
    }

    #[test]
    fn networks_have_a_length() {
        let contains = |network: &str, address: &str| {
            Addresses::parse(network).unwrap().contain(address.parse().unwrap())
        };
        assert!(contains("172.18.0.0/16", "172.18.255.1") && !contains("172.18.0.0/16", "172.19.0.1"));
        assert!(
            contains("fd00::/8", "fd12::1")
                && !contains("fd00::/8", "fe80::1")
                && !contains("::1", "127.0.0.1")
        );
        for wrong in ["", "proxy", "10.0.0.0/33", "10.0.0.0/0", "10.0.0.0/x", "0.0.0.0/"] {
            assert!(Addresses::parse(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "a b", "Cookie", "authorization"] {
            assert!(Network::new(&["::1".to_owned()], Some(wrong)).is_err(), "{wrong}");
        }
        assert!(Network::new(&[], Some("x-user")).is_err());
    }
}
