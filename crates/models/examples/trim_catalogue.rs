//! Turns the data of models.dev (stdin) into the embedded catalogue (stdout). `cargo xtask catalogue` runs it.

use std::io::{Read, Write};

use attache_models::Catalogue;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let catalogue = Catalogue::from_models_dev(&text)?;
    std::io::stdout().write_all(catalogue.to_json().as_bytes())?;
    Ok(())
}
