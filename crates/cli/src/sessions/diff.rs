//! `attache sessions diff`: prints where two sessions differ, turn by turn. Reads only; holds one turn of each
//! in memory.

use std::fmt::Write as _;

use anyhow::Result;
use attache_core::compared::{ComparedTurns, changed};
use attache_core::ports::store::{SessionRecord, Store};

use crate::answer;
use crate::paint::{Colour, Paint};

pub(super) async fn run(store: &dyn Store, first: &SessionRecord, second: &SessionRecord) -> Result<()> {
    let mut ours = ComparedTurns::open(store, first, None).await?;
    let mut theirs = ComparedTurns::open(store, second, None).await?;
    let paint = Paint::for_answers();
    let (mut number, mut different) = (0, 0);
    loop {
        let (old, new) = (ours.next().await?, theirs.next().await?);
        if old.is_none() && new.is_none() {
            break;
        }
        number += 1;
        let (old, new) = (old.unwrap_or_default().lines, new.unwrap_or_default().lines);
        if old == new {
            continue;
        }
        different += 1;
        let mut text = format!("{}\n", paint.paint(Colour::Bold, &format!("turn {number}")));
        for line in changed(&old, &new) {
            let colour = match line.as_bytes().first() {
                Some(b'-') => Some(Colour::Red),
                Some(b'+') => Some(Colour::Green),
                Some(_) | None => None,
            };
            match colour {
                Some(colour) => writeln!(text, "{}", paint.paint(colour, &line))?,
                None => writeln!(text, "{line}")?,
            }
        }
        answer::write_painted(&text)?;
    }
    let same = number - different;
    answer::note(&match number {
        1 if same == 1 => "the only turn is the same".to_owned(),
        1 => "the only turn differs".to_owned(),
        _ => format!("{same} of {number} turns are the same"),
    });
    Ok(())
}
