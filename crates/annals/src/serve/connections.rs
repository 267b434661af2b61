//! Accepts connections, as many as there is room for, and gives up on those that send or take nothing.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Sleep};
use tokio_rustls::TlsAcceptor;

use super::network::Peer;
use super::tls::Tls;

/// How long a client may take to send the head of a request, and may stay without one.
const HEAD: Duration = Duration::from_secs(20);
/// How long a client may take none of an answer, or send none of a body.
const STALLED: Duration = Duration::from_secs(30);
/// Connections at a time.
const MOST: u64 = 512;
/// Open files that are kept for the archive and everything else.
const KEPT_FILES: u64 = 64;
/// Pause when nothing can be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves connections until `stopped`, then waits for those that are being answered.
pub(super) async fn serve(
    listener: TcpListener,
    tls: Option<Tls>,
    routes: Router,
    stopped: impl Future<Output = ()>,
) {
    let room = Arc::new(Room::new(file_limit()));
    let graceful = GracefulShutdown::new();
    let mut stopped = std::pin::pin!(stopped);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stopped => break,
        };
        let (stream, from) = match accepted {
            Ok(accepted) => accepted,
            // Out of files, for instance: connections that end make room.
            Err(_) => {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        // Closed at once: whoever is connected already keeps being answered.
        let Some(place) = room.enter(from.ip()) else { continue };
        // Small answers wait for nothing.
        drop(stream.set_nodelay(true));
        let peer = Peer { address: from.ip(), is_encrypted: tls.is_some() };
        let (stream, routes, watcher) = (Impatient::new(stream), routes.clone(), graceful.watcher());
        match tls.as_ref().map(Tls::current) {
            None => drop(tokio::spawn(answer(stream, routes, peer, watcher, place))),
            Some(config) => drop(tokio::spawn(async move {
                let shaken = tokio::time::timeout(HEAD, TlsAcceptor::from(config).accept(stream)).await;
                // Whoever speaks no TLS here is not answered.
                let Ok(Ok(stream)) = shaken else { return };
                answer(stream, routes, peer, watcher, place).await;
            })),
        }
    }
    drop(listener);
    graceful.shutdown().await;
}

/// Answers the requests of one connection, each with whom it comes from.
async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    routes: Router,
    peer: Peer,
    watcher: Watcher,
    place: Place,
) {
    let routes = TowerToHyperService::new(routes);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(peer);
        routes.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .serve_connection(TokioIo::new(stream), service);
    // A client that goes away, or sends what is no request, is none of our business.
    drop(watcher.watch(connection).await);
    drop(place);
}

/// How many files this process may have open.
fn file_limit() -> u64 {
    #[cfg(unix)]
    {
        rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX)
    }
    #[cfg(not(unix))]
    {
        u64::MAX
    }
}

/// Counts connections by address. One address gets at most three quarters of the places.
struct Room {
    most: u64,
    most_of_one: u64,
    taken: Mutex<HashMap<IpAddr, u64>>,
}

impl Room {
    fn new(files: u64) -> Room {
        let most = files.saturating_sub(KEPT_FILES).clamp(4, MOST);
        Room { most, most_of_one: (most * 3 / 4).max(1), taken: Mutex::default() }
    }

    /// A place for a connection, given back on drop.
    fn enter(self: &Arc<Room>, address: IpAddr) -> Option<Place> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let all: u64 = taken.values().sum();
        let of_one = taken.entry(address).or_default();
        if all >= self.most || *of_one >= self.most_of_one {
            return None;
        }
        *of_one += 1;
        Some(Place { room: self.clone(), address })
    }
}

struct Place {
    room: Arc<Room>,
    address: IpAddr,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.room.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.address);
            }
        }
    }
}

/// A connection that fails when the other side takes nothing for a while.
struct Impatient {
    stream: TcpStream,
    /// Set while bytes wait to be taken.
    patience: Option<Pin<Box<Sleep>>>,
}

impl Impatient {
    fn new(stream: TcpStream) -> Impatient {
        Impatient { stream, patience: None }
    }

    /// The outcome of a write, or an error once nothing was taken for too long.
    fn or_give_up<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.patience = None;
            return written;
        }
        let patience =
            self.patience.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + STALLED)));
        ready!(patience.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Impatient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Impatient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.or_give_up(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let written = Pin::new(&mut self.stream).poll_flush(context);
        self.or_give_up(context, written)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST, Room};
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::Arc;

    #[test]
    fn one_address_leaves_room_for_others() {
        let room = Arc::new(Room::new(84));
        let (one, other) = (IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from([10, 0, 0, 1]));
        let places: Vec<_> = (0..15).map(|_| room.enter(one).unwrap()).collect();
        assert!(room.enter(one).is_none());
        let others: Vec<_> = (0..5).map(|_| room.enter(other).unwrap()).collect();
        assert!(room.enter(other).is_none());
        drop(places);
        assert!(room.enter(one).is_some());
        drop(others);
        assert!(room.taken.lock().unwrap().is_empty());
        assert_eq!((Room::new(u64::MAX).most, Room::new(3).most), (MOST, 4));
    }
}
