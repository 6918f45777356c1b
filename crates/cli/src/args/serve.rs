//! What can be typed behind `attache serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::SessionArgs;

#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = "Example:\n  attache serve --listen 127.0.0.1:7766")]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) sessions: SessionArgs,
    /// Where to listen; else on this machine, from port 7766 on
    #[arg(long, value_name = "ADDR|unix:PATH", value_parser = listen_target)]
    pub(crate) listen: Option<ListenTarget>,
    /// Whether to use files and terminals of clients: auto, never
    #[arg(long, value_name = "WHEN", hide_possible_values = true, value_parser = ["auto", "never"])]
    pub(crate) client_fs: Option<String>,
    /// Write the ACP traffic to this file, one JSON object per line
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Be the shared server of this home; `attache acp --shared` starts it
    #[arg(long, hide = true, conflicts_with_all = ["listen", "show_token", "new_token"])]
    pub(crate) daemon: bool,
    /// Print a new token for another client, then exit
    #[arg(long, conflicts_with = "show_token")]
    pub(crate) new_token: bool,
    /// Print a link that logs a browser in to the page, once
    #[arg(long, conflicts_with = "show_token")]
    pub(crate) open: bool,
    /// Print the token that clients need, then exit
    #[arg(long)]
    pub(crate) show_token: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListenTarget {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

fn listen_target(text: &str) -> Result<ListenTarget, String> {
    match text.strip_prefix("unix:") {
        Some("") => Err("the path of the socket is missing: unix:PATH".to_owned()),
        Some(path) => Ok(ListenTarget::Unix(PathBuf::from(path))),
        None => text.parse().map(ListenTarget::Tcp).map_err(|_| {
            "give an address with a port, such as 127.0.0.1:7766 or [::1]:0, or unix:PATH".to_owned()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_an_address_or_a_socket() {
        assert_eq!(listen_target("127.0.0.1:0"), Ok(ListenTarget::Tcp("127.0.0.1:0".parse().unwrap())));
        assert_eq!(listen_target("unix:/run/a b"), Ok(ListenTarget::Unix("/run/a b".into())));
        for wrong in ["", "7766", "localhost:7766", "unix:", "127.0.0.1"] {
            assert!(listen_target(wrong).is_err(), "{wrong}");
        }
    }
}
