//! What one text update costs. Run with `--release --run-ignored only`.

use std::hint::black_box;
use std::time::Instant;

use attache_acp::to_wire::write_updates;
use attache_core::chunk::Chunk;
use attache_core::entry::Entry;
use attache_core::ids::{MessageId, SessionId};
use attache_core::part::Role;

use crate::view;

#[test]
#[ignore = "a measurement"]
fn nanoseconds_per_text_update() {
    let view = view();
    let session_id = SessionId::new("ses_0199a8b1c2d3e4AbCdEfGhIjKl");
    let message_id = MessageId::new("msg_0199a8b1c2d3e4AbCdEfGhIjKl");
    for text in ["word ", "a longer piece of text, say one sentence with \"quotes\".\n", &"x".repeat(4096)] {
        let chunk = Chunk::text_delta(&"t".into(), text);
        let entry = Entry {
            session_id: &session_id,
            message_id: &message_id,
            role: Role::Assistant,
            index: 0,
            step: 1,
            chunk: &chunk,
        };
        let mut out = Vec::with_capacity(1 << 20);
        let times = 2_000_000;
        let start = Instant::now();
        for _ in 0..times {
            if out.len() > 1 << 19 {
                out.clear();
            }
            write_updates(black_box(entry), &view, &mut out).unwrap();
        }
        let per_update = start.elapsed().as_nanos() as f64 / f64::from(times);
        println!("{:>5} bytes of text: {per_update:.0} ns", text.len());
    }
}
