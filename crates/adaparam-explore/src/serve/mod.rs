//! Pages that answer: a small server for one person and their browser.
//!
//! It listens on this computer only, unless told otherwise. Every address has a token in it that nobody can guess, and the
//! server answers only to its own names, so that no other page can ask it, not even one whose name leads here. It reads no
//! file by a name that it is given: what it knows was opened before it began.

mod guard;
mod http;
mod live;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use guard::Guard;
pub use live::{Live, Looked};

use crate::ExploreError;

/// Connections at a time.
const MOST_CONNECTIONS: usize = 24;
/// Between two looks at whether to stop.
const PAUSE: Duration = Duration::from_millis(25);
/// A browser that takes nothing for so long has gone.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    guard: Guard,
    address: SocketAddr,
    token: String,
}

impl Server {
    /// Listens at an address; port 0 is any that is free.
    ///
    /// # Errors
    ///
    /// If that is not possible.
    pub fn listen(address: SocketAddr) -> Result<Self, ExploreError> {
        let fail = |cause| ExploreError::Listen {
            address: address.to_string(),
            cause,
        };
        let listener = TcpListener::bind(address).map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        let mut secret = [0; 16];
        getrandom::fill(&mut secret).map_err(|error| fail(error.into()))?;
        let token = format!("{:032x}", u128::from_be_bytes(secret));
        Ok(Self {
            guard: Guard::new(address, token.clone()),
            listener,
            address,
            token,
        })
    }

    /// What to open in a browser.
    pub fn url(&self) -> String {
        format!("http://{}/{}/", self.address, self.token)
    }

    /// Answers until `stop` is set.
    pub fn run(&self, live: &Live<'_>, stop: &AtomicBool) {
        let open = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            while !stop.load(Ordering::Relaxed) {
                let Ok((stream, _)) = self.listener.accept() else {
                    std::thread::sleep(PAUSE);
                    continue;
                };
                let Some(seat) = Seat::take(&open) else {
                    continue;
                };
                let guard = &self.guard;
                // Where the system has no thread left, the connection ends.
                let _ = std::thread::Builder::new().spawn_scoped(scope, move || {
                    // All of it, to be given back at the end.
                    let seat = seat;
                    // Whoever goes away while being answered is no fault of ours.
                    let _ = if seat.is_free {
                        serve(stream, guard, live, stop)
                    } else {
                        turn_away(stream, stop)
                    };
                });
            }
        });
    }
}

/// The place of one connection, given back when it ends, however it does.
struct Seat<'a> {
    taken: &'a AtomicUsize,
    /// Whether it is a place to be answered at; else to be told that there is none.
    is_free: bool,
}

impl<'a> Seat<'a> {
    /// Nothing where so many are being turned away already that this one is not even told.
    fn take(taken: &'a AtomicUsize) -> Option<Self> {
        let others = taken.fetch_add(1, Ordering::Relaxed);
        let seat = Self {
            taken,
            is_free: others < MOST_CONNECTIONS,
        };
        (others < 2 * MOST_CONNECTIONS).then_some(seat)
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

fn turn_away(mut stream: TcpStream, stop: &AtomicBool) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let busy = http::Refusal::new(503, "too many connections: close other pages");
    http::refuse(&mut stream, busy)?;
    http::hear_out(&mut stream, stop)
}

fn serve(
    mut stream: TcpStream,
    guard: &Guard,
    live: &Live<'_>,
    stop: &AtomicBool,
) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = match http::receive(&mut stream, stop) {
        Ok(request) => request,
        Err(refusal) => {
            http::refuse(&mut stream, refusal)?;
            return http::hear_out(&mut stream, stop);
        }
    };
    match guard.admit(&request) {
        Ok(path) => live.answer(&request, path, &mut stream, stop),
        Err(refusal) => http::refuse(&mut stream, refusal),
    }
}
