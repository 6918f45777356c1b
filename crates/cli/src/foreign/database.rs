//! Databases of other agents, opened read-only.

use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Map, Value, json};

use super::talk::TalkError;
use crate::limits::FOREIGN_WAIT;

#[derive(Debug)]
pub(super) struct ForeignDatabase(Connection);

impl ForeignDatabase {
    pub(super) fn open(path: &Path) -> Result<Self, TalkError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(told)?;
        connection.busy_timeout(FOREIGN_WAIT).map_err(told)?;
        Ok(Self(connection))
    }

    /// The columns of a table; none if the table does not exist.
    pub(super) fn columns(&self, table: &str) -> Result<Vec<String>, TalkError> {
        let rows = self.rows("SELECT name FROM pragma_table_info(?1)", table)?;
        Ok(rows.iter().filter_map(|row| row["name"].as_str()).map(str::to_owned).collect())
    }

    /// Each row as an object of its columns. The query may ignore its one parameter.
    pub(super) fn rows(&self, query: &str, parameter: &str) -> Result<Vec<Value>, TalkError> {
        let mut statement = self.0.prepare(query).map_err(told)?;
        let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let mut rows = match statement.parameter_count() {
            0 => statement.query([]),
            _ => statement.query([parameter]),
        }
        .map_err(told)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(told)? {
            let mut object = Map::new();
            for (index, name) in names.iter().enumerate() {
                object.insert(name.clone(), value(row.get_ref(index).map_err(told)?));
            }
            found.push(Value::Object(object));
        }
        Ok(found)
    }
}

fn value(column: ValueRef<'_>) -> Value {
    match column {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => json!(number),
        ValueRef::Real(number) => json!(number),
        ValueRef::Text(text) | ValueRef::Blob(text) => json!(String::from_utf8_lossy(text)),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "what `map_err` gives")]
fn told(error: rusqlite::Error) -> TalkError {
    TalkError::Form(format!("the database can't be read: {error}"))
}
