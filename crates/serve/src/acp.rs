//! ACP over HTTP: connections by their ids, and the two ways in which they are carried.

mod carrier;
mod connection;
mod connections;
mod events;
mod headers;
mod http;
mod routes;
mod socket;
mod still_readable;
mod upgrade;

use axum::Router;
use axum::routing::get;

pub(crate) use connections::AcpConnections;

/// Where clients connect to.
pub const ACP_PATH: &str = "/acp";

pub(crate) fn acp_router(connections: AcpConnections) -> Router {
    let methods = get(http::get).post(http::post).delete(http::delete);
    Router::new().route(ACP_PATH, methods).with_state(connections)
}
