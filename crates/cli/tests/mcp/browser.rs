//! In the place of a user's browser: gets addresses of this machine, and goes where it is sent.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// An answer: its head, and what comes behind it.
pub(crate) struct Got {
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Got {
    pub(crate) fn status(&self) -> u16 {
        self.head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
    }

    /// Where it sends the browser to.
    pub(crate) fn location(&self) -> Option<String> {
        let line = self.head.lines().find(|line| line.to_ascii_lowercase().starts_with("location:"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    }
}

pub(crate) async fn get(url: &str) -> Got {
    ask("GET", url, "").await
}

pub(crate) async fn ask(method: &str, url: &str, body: &str) -> Got {
    let rest = url.strip_prefix("http://").unwrap_or_else(|| panic!("not of this machine: {url}"));
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let mut stream = TcpStream::connect(host).await.unwrap_or_else(|error| panic!("{url}: {error}"));
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("a whole answer");
    Got { head: head.to_owned(), body: body.to_owned() }
}

/// To the authorization server and back, with no one who says no. The page at the end.
pub(crate) async fn browse(url: &str) -> Got {
    let mut got = get(url).await;
    while let Some(next) = got.location() {
        got = get(&next).await;
    }
    got
}
