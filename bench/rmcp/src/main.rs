//! A bare client on `rmcp`: starts the server that its arguments name and says hello; then makes one call for
//! each line that it reads, and prints how long that took, in nanoseconds. Compared with by `attache-bench`.

use std::error::Error;
use std::io::{BufRead, Write};
use std::process::Stdio;
use std::time::Instant;

use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use serde_json::json;
use tokio::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    // As many threads as the product has.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(serve_lines())
}

async fn serve_lines() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args_os().skip(1);
    let program = words.next().ok_or("the server is missing: PROGRAM [ARGUMENTS]")?;
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut server = command.spawn()?;
    let streams = server.stdout.take().zip(server.stdin.take()).ok_or("the server has no streams")?;
    let client = ().serve(streams).await?;
    let arguments = json!({ "text": "hello" }).as_object().cloned().unwrap_or_default();
    let (input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    for line in input.lines() {
        line?;
        let params = CallToolRequestParams::new("echo").with_arguments(arguments.clone());
        let started = Instant::now();
        let result = client.call_tool(params).await?;
        let time = started.elapsed();
        if result.content.is_empty() {
            return Err("the server says nothing".into());
        }
        writeln!(output, "{}", time.as_nanos())?;
        output.flush()?;
    }
    client.cancel().await?;
    Ok(())
}
