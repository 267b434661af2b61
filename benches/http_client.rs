//! A plain HTTP client on a persistent connection, and many of them at once, with their response times.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::Outcome;

/// The server's address, and the access token.
pub struct Target {
    pub address: String,
    pub token: String,
}

pub struct Connection<'a> {
    target: &'a Target,
    stream: TcpStream,
    received: Vec<u8>,
}

/// How long a response took.
pub struct Waited {
    pub first_byte: Duration,
    pub whole: Duration,
}

impl<'a> Connection<'a> {
    pub fn open(target: &'a Target) -> Outcome<Self> {
        let stream = TcpStream::connect(&target.address)
            .and_then(|stream| stream.set_nodelay(true).map(|()| stream))
            .and_then(|stream| stream.set_read_timeout(Some(Duration::from_secs(30))).map(|()| stream))
            .map_err(|error| format!("{}: {error}", target.address))?;
        Ok(Self { target, stream, received: Vec::new() })
    }

    /// Anything but a complete response with status 200 is a failure of the bench.
    pub fn get(&mut self, path: &str) -> Outcome<Waited> {
        let Target { address, token } = self.target;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n");
        let failed = |what: &dyn std::fmt::Display| format!("{path}: {what}");
        let started = Instant::now();
        self.stream.write_all(request.as_bytes()).map_err(|error| failed(&error))?;
        self.received.clear();
        let (mut first_byte, mut end, mut buffer) = (Duration::ZERO, None, [0; 64 << 10]);
        while end.is_none_or(|(_, end)| self.received.len() < end) {
            let count = self.stream.read(&mut buffer).map_err(|error| failed(&error))?;
            if count == 0 {
                return Err(failed(&"the connection ended within an answer"));
            }
            if self.received.is_empty() {
                first_byte = started.elapsed();
            }
            self.received.extend_from_slice(&buffer[..count]);
            if end.is_none() {
                end = self.body_range()?;
            }
        }
        let waited = Waited { first_byte, whole: started.elapsed() };
        if !self.received.starts_with(b"HTTP/1.1 200 ") {
            return Err(failed(&String::from_utf8_lossy(&self.received)));
        }
        self.received.drain(..end.map_or(0, |(body, _)| body));
        Ok(waited)
    }

    /// The start and end of the body, once the head is complete.
    fn body_range(&self) -> Outcome<Option<(usize, usize)>> {
        let Some(head) = self.received.windows(4).position(|four| four == b"\r\n\r\n") else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(&self.received[..head]).to_ascii_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
        let length: usize = length.ok_or_else(|| format!("no length of the body in {text:?}"))?;
        Ok(Some((head + 4, head + 4 + length)))
    }

    /// The response as JSON.
    pub fn get_json(&mut self, path: &str) -> Outcome<serde_json::Value> {
        self.get(path)?;
        serde_json::from_slice(&self.received).map_err(|error| format!("{path}: {error}"))
    }
}

/// Response times in milliseconds, sorted.
pub struct Latencies(Vec<f64>);

impl Latencies {
    pub fn of(mut milliseconds: Vec<f64>) -> Self {
        milliseconds.sort_by(f64::total_cmp);
        Self(milliseconds)
    }

    pub fn percentile(&self, percent: usize) -> f64 {
        let at = (self.0.len() * percent).div_ceil(100).saturating_sub(1);
        self.0.get(at).copied().unwrap_or(f64::NAN)
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// Which of the times counts.
pub type Figure = fn(&Waited) -> Duration;

/// `clients` clients request one path after another, each as soon as it has its last response.
pub fn load(
    target: &Target,
    clients: usize,
    duration: Duration,
    paths: &[String],
    figure: Figure,
) -> Outcome<Latencies> {
    let next = AtomicUsize::new(0);
    let client = || -> Outcome<Vec<f64>> {
        let (mut connection, mut times, started) = (Connection::open(target)?, Vec::new(), Instant::now());
        while started.elapsed() < duration {
            let path = &paths[next.fetch_add(1, Ordering::Relaxed) % paths.len()];
            times.push(figure(&connection.get(path)?).as_secs_f64() * 1e3);
        }
        Ok(times)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..clients).map(|_| scope.spawn(client)).collect();
        let mut all = Vec::new();
        for thread in threads {
            all.extend(thread.join().map_err(|_| "a client panicked")??);
        }
        Ok(Latencies::of(all))
    })
}
