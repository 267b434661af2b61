//! The side that asks: requests to a hub, repeated while it is away.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::wire::{Hello, HelloAnswer, LONGEST_BODY, PROTOCOL, ROUTE};
use annals_core::{Error, Result, from_hex};

/// A request is repeated so often while the hub cannot be reached or is busy.
const TRIES: u32 = 6;
const CONNECT: Duration = Duration::from_secs(20);
const ANSWER: Duration = Duration::from_secs(600);

/// Where the hub is, and the token that opens it.
pub struct HubAddress {
    pub url: String,
    pub token: String,
    /// Certificates of a private authority, as PEM.
    pub authority: Option<Vec<u8>>,
}

pub struct Hub {
    agent: ureq::Agent,
    url: String,
    authorization: String,
    pub requests: u64,
    pub sent_bytes: u64,
    pub received_bytes: u64,
}

impl Hub {
    pub fn at(address: &HubAddress) -> Result<Hub> {
        let url = address.url.trim_end_matches('/').to_owned();
        check_address(&url)?;
        let mut tls = ureq::tls::TlsConfig::builder();
        if let Some(pem) = &address.authority {
            let mut certificates = Vec::new();
            for item in ureq::tls::parse_pem(pem) {
                match item {
                    Ok(ureq::tls::PemItem::Certificate(certificate)) => certificates.push(certificate),
                    Ok(_) => {}
                    Err(error) => return Err(Error::new(format!("not a certificate: {error}"))),
                }
            }
            if certificates.is_empty() {
                return Err(Error::new("the file of --ca has no certificate").hint("use one in PEM form"));
            }
            tls = tls.root_certs(ureq::tls::RootCerts::new_with_certs(&certificates));
        }
        let config = ureq::Agent::config_builder()
            .tls_config(tls.build())
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_connect(Some(CONNECT))
            .timeout_global(Some(ANSWER))
            .user_agent("annals")
            .build();
        let authorization = format!("Bearer {}", address.token.trim());
        Ok(Hub { agent: config.into(), url, authorization, requests: 0, sent_bytes: 0, received_bytes: 0 })
    }

    /// The first request: whether we understand each other, and who we are there.
    pub fn hello(&mut self, hello: &Hello) -> Result<(HelloAnswer, Vec<u8>)> {
        let answer: HelloAnswer = self.ask("hello", hello)?;
        if answer.protocol != PROTOCOL {
            return Err(Error::new(format!("the hub speaks protocol {}, not {PROTOCOL}", answer.protocol))
                .hint("update annals here or there"));
        }
        let archive = from_hex(&answer.archive).filter(|archive| archive.len() == 16);
        let archive = archive.ok_or_else(|| Error::new("the hub has no name"))?;
        Ok((answer, archive))
    }

    pub fn ask<T: DeserializeOwned>(&mut self, step: &str, request: &impl Serialize) -> Result<T> {
        let answer = self.send(step, &serde_json::to_vec(request)?)?;
        let unclear = |error| Error::new(format!("{} does not answer as a hub: {error}", self.url));
        serde_json::from_slice(&answer).map_err(unclear)
    }

    /// What a route of the hub answers, beside the protocol.
    pub fn get<T: DeserializeOwned>(&mut self, path: &str) -> Result<T> {
        let sent =
            self.agent.get(format!("{}{path}", self.url)).header("Authorization", &self.authorization).call();
        let answer = self.received(sent).map_err(Failure::into_error)?;
        let unclear = |error| Error::new(format!("{} does not answer as a hub: {error}", self.url));
        serde_json::from_slice(&answer).map_err(unclear)
    }

    pub fn send(&mut self, step: &str, body: &[u8]) -> Result<Vec<u8>> {
        let mut pause = Duration::from_millis(200);
        for attempt in 1.. {
            match self.send_once(step, body) {
                Err(Failure::Passing(_)) if attempt < TRIES => std::thread::sleep(pause),
                Err(Failure::Passing(error) | Failure::Lasting(error)) => return Err(error),
                Ok(answer) => return Ok(answer),
            }
            pause *= 2;
        }
        Err(Error::new("the hub cannot be reached"))
    }

    fn send_once(&mut self, step: &str, body: &[u8]) -> std::result::Result<Vec<u8>, Failure> {
        self.requests += 1;
        self.sent_bytes += body.len() as u64;
        let sent = self
            .agent
            .post(format!("{}{ROUTE}{step}", self.url))
            .header("Authorization", &self.authorization)
            .header(
                "Content-Type",
                if step == "blobs" { "application/octet-stream" } else { "application/json" },
            )
            .send(body);
        self.received(sent)
    }

    /// The body of an answer, or why there is none.
    fn received(
        &mut self,
        sent: std::result::Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> std::result::Result<Vec<u8>, Failure> {
        let unreachable = |error: ureq::Error| {
            let passing =
                !matches!(error, ureq::Error::Tls(_) | ureq::Error::Rustls(_) | ureq::Error::BadUri(_));
            let error = Error::new(format!("cannot reach {}: {error}", self.url))
                .hint("check the address, and that `annals serve` runs there; with a private authority use --ca FILE");
            if passing { Failure::Passing(error) } else { Failure::Lasting(error) }
        };
        let mut response = sent.map_err(unreachable)?;
        let status = response.status().as_u16();
        let read = response.body_mut().with_config().limit(2 * LONGEST_BODY as u64).read_to_vec();
        let answer = read.map_err(unreachable)?;
        self.received_bytes += answer.len() as u64;
        if status == 200 {
            return Ok(answer);
        }
        let problem: Value = serde_json::from_slice(&answer).unwrap_or_default();
        let detail = problem["detail"].as_str().unwrap_or("no annals answers there");
        let error = match status {
            401 => Error::new(format!(
                "{}: the token is not valid: it may have been revoked, or have expired",
                self.url
            ))
            .hint("ask the admin of the hub for another one: annals members token NAME"),
            404 => Error::new(format!("{}: {detail}", self.url))
                .hint("the hub may be an older annals: update it"),
            _ => Error::new(format!("{} refused: {detail}", self.url)),
        };
        let error = match problem["hint"].as_str() {
            Some(hint) if error.hint.is_none() => error.hint(hint.to_owned()),
            _ => error,
        };
        Err(if matches!(status, 429 | 502 | 503 | 504) {
            Failure::Passing(error)
        } else {
            Failure::Lasting(error)
        })
    }
}

/// Whether it makes sense to ask again.
enum Failure {
    Passing(Error),
    Lasting(Error),
}

impl Failure {
    fn into_error(self) -> Error {
        match self {
            Failure::Passing(error) | Failure::Lasting(error) => error,
        }
    }
}

/// Tokens and sessions leave this machine only encrypted.
fn check_address(url: &str) -> Result<()> {
    if url.contains('@') {
        return Err(Error::new("the address of a hub has no user and no password")
            .hint("annals push https://hub.example.org --token-file FILE"));
    }
    if url.starts_with("https://") {
        return Ok(());
    }
    let Some(rest) = url.strip_prefix("http://") else {
        return Err(Error::new(format!("not an address of a hub: {url:?}"))
            .hint("annals push https://hub.example.org"));
    };
    let authority = rest.split('/').next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
    };
    let is_loopback = host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    if is_loopback || host == "localhost" {
        return Ok(());
    }
    Err(Error::new(format!("refusing to send sessions to {host} without encryption"))
        .hint("use https://, or a tunnel to the hub's loopback: ssh -L 4848:127.0.0.1:4848 HOST"))
}

#[cfg(test)]
mod tests {
    use super::check_address;

    #[test]
    fn plain_http_goes_no_further_than_this_machine() {
        for good in
            ["https://hub.example.org", "http://127.0.0.1:4848", "http://localhost:1/", "http://[::1]:80"]
        {
            assert!(check_address(good).is_ok(), "{good}");
        }
        for bad in [
            "http://hub",
            "http://10.0.0.1:80",
            "http://127.0.0.1.example.org",
            "http://a:b@127.0.0.1",
            "hub:80",
            "ftp://127.0.0.1",
        ] {
            assert!(check_address(bad).is_err(), "{bad}");
        }
    }
}
