//! Looks into the session database from outside, beside a running agent or after it. Changes only what a test
//! breaks.

use rusqlite::Connection;

use crate::binary::Home;

/// How many rows there are of each kind: equal before and after means that nothing was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowCounts {
    pub sessions: i64,
    pub messages: i64,
    pub parts: i64,
}

/// A connection of our own to the home's database.
pub fn connect(home: &Home) -> Connection {
    let connection = Connection::open(home.database()).expect("open the session database");
    connection.busy_timeout(crate::limits::ANSWER_TIMEOUT).expect("set the busy timeout");
    connection
}

pub fn row_counts(home: &Home) -> RowCounts {
    let connection = connect(home);
    let count = |table: &str| {
        connection
            .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))
            .unwrap_or_else(|error| panic!("count {table}: {error}"))
    };
    RowCounts {
        sessions: count("chat_sessions"),
        messages: count("chat_messages"),
        parts: count("chat_parts"),
    }
}
