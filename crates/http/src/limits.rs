//! Every size and time this crate holds itself to, with its reason.

use std::time::Duration;

/// Connections at once. Each costs a task and its buffers; further ones wait until one ends.
pub const CONNECTIONS: usize = 64;

/// Bytes of a request's head: a token and some headers are a hundredth of that.
pub(crate) const HEAD_BYTES: usize = 64 * 1024;

/// How long a head may take, and how long a connection may be silent between two requests.
pub const HEAD_TIME: Duration = Duration::from_secs(30);

/// How long a body may take: the largest that is accepted, over a slow line.
pub const BODY_TIME: Duration = Duration::from_secs(60);

/// Silence on a stream of events after which a comment says that it is still there; proxies cut after a minute.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Before connections are accepted again when that failed: descriptors are missing, and come back.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Streams of one HTTP/2 connection at once: as many as a browser opens, and more.
pub(crate) const STREAMS: u32 = 128;

/// Before a silent HTTP/2 connection is asked whether it is still there, and how long the answer may take.
pub(crate) const STILL_THERE: Duration = Duration::from_secs(20);

/// How long answers under way may take once the listener ends.
pub const ENDING: Duration = Duration::from_secs(2);

/// Bytes of a token, before it is written as text: 256 bits can't be guessed.
pub(crate) const TOKEN_BYTES: usize = 32;

/// How long a link to log in works: until a person has clicked it.
pub const LINK_TIME: Duration = Duration::from_secs(60);

/// How long a page stays logged in: a long day.
pub const COOKIE_TIME: Duration = Duration::from_secs(12 * 60 * 60);

/// Links and logins that are known at once; the oldest makes room. One person has a few browsers.
pub(crate) const LINKS: usize = 8;
pub(crate) const COOKIES: usize = 64;

/// Of a link's key and of a cookie: nobody guesses 256 bits.
pub(crate) const LOGIN_BYTES: usize = 32;
