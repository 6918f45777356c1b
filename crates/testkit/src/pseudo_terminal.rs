//! A terminal for commands that ask: what a person sees and types, and what the program gets.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// The person's side, and what the program has for stdin and stderr.
pub fn open() -> (File, File) {
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&person).unwrap();
    unlockpt(&person).unwrap();
    let name = ptsname(&person, Vec::new()).unwrap();
    let path = Path::new(OsStr::from_bytes(name.to_bytes()));
    (person.into(), OpenOptions::new().read(true).write(true).open(path).unwrap())
}

/// What is on the screen as soon as these words are there. Blocks.
pub fn read_until(person: &mut File, words: &str) -> String {
    let (mut screen, mut bytes) = (String::new(), [0; 256]);
    while !screen.contains(words) {
        let count = person.read(&mut bytes).unwrap();
        screen.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    screen
}
