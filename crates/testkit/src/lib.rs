//! Watches the wire for the tests: schema, order and count of every message. Never part of the product.

pub mod schema;
pub mod snake_case;
