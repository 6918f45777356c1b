//! The token of this home, in a file that only its owner can read. Created on first use.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use attache_http::BearerToken;

/// A token, and whether its user has seen it.
#[derive(Debug)]
pub(crate) enum HomeToken {
    New(BearerToken),
    Known(BearerToken),
}

/// If two processes create one at the same time, both end up with the same.
pub(crate) fn open(path: &Path) -> Result<HomeToken> {
    let shown = path.display();
    match read(path) {
        Ok(text) => parsed(&text, path).map(HomeToken::Known),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let token = BearerToken::generate().context("a token can't be made")?;
            match write_new(path, &token) {
                Ok(()) => Ok(HomeToken::New(token)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let text = read(path).with_context(|| format!("can't read {shown}"))?;
                    parsed(&text, path).map(HomeToken::Known)
                }
                Err(error) => Err(error).with_context(|| format!("can't write {shown}")),
            }
        }
        Err(error) => Err(error).with_context(|| format!("can't read {shown}")),
    }
}

/// The existing token; does not create one.
pub(crate) fn kept(path: &Path) -> Result<Option<BearerToken>> {
    match read(path) {
        Ok(text) => parsed(&text, path).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("can't read {}", path.display())),
    }
}

/// A token that others can read is no longer secret.
fn read(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    if file.metadata()?.mode() & 0o077 != 0 {
        let reason = "others may read it: delete it, and a new one is made";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    let mut text = String::new();
    file.take(1024).read_to_string(&mut text)?;
    Ok(text)
}

fn parsed(text: &str, path: &Path) -> Result<BearerToken> {
    match BearerToken::parse(text) {
        Some(token) => Ok(token),
        None => bail!("{} does not hold a token: delete it, and a new one is made", path.display()),
    }
}

/// Renames the file when it is complete, because another process may read at any moment. The temporary file has
/// a new name for each call (and mode 0600), so that two threads of one process do not write the same one.
fn write_new(path: &Path, token: &BearerToken) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let mut file = tempfile::Builder::new().prefix(".token-").tempfile_in(directory)?;
    writeln!(file, "{}", token.as_str())?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn token(opened: HomeToken) -> (bool, String) {
        match opened {
            HomeToken::New(token) => (true, token.as_str().to_owned()),
            HomeToken::Known(token) => (false, token.as_str().to_owned()),
        }
    }

    #[test]
    fn it_is_made_once_for_its_owner_alone() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("token");
        let (is_new, first) = token(open(&path).unwrap());
        assert!(is_new && first.len() == 64);
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        assert_eq!(token(open(&path).unwrap()), (false, first));
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_others_read_or_somebody_else_wrote_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("token");
        open(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(format!("{:#}", open(&path).unwrap_err()).contains("others may read it"));
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "secret").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(format!("{:#}", open(&path).unwrap_err()).contains("does not hold a token"));
    }

    #[test]
    fn many_at_once_agree_on_one() {
        for _ in 0..20 {
            let home = tempfile::tempdir().unwrap();
            let path = home.path().join("token");
            let all: Vec<String> = std::thread::scope(|scope| {
                let opened: Vec<_> = (0..8).map(|_| scope.spawn(|| open(&path))).collect();
                opened.into_iter().map(|thread| token(thread.join().unwrap().unwrap()).1).collect()
            });
            let kept = std::fs::read_to_string(&path).unwrap();
            assert!(all.iter().all(|token| token == kept.trim()));
            assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1);
        }
    }
}
