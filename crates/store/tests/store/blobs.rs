//! Attachments: one copy per content, gone with the last session that refers to it.

use attache_core::ports::store::{Blobs, StoreError};
use attache_store::FileBlobs;

use crate::fixture::*;

/// SHA-256 of "attachment", from another implementation.
const DIGEST: &str = "602a5e69c3021bdbd3d25156a02d2cbb467605b8203248eea6af3fb42168d663";

#[tokio::test]
async fn the_same_content_is_kept_once_until_nobody_refers_to_it() {
    let home = Home::new();
    let blobs = FileBlobs::new(home.location().blobs);
    let (a, b) = (session_id("a"), session_id("../b"));
    let digest = blobs.put(&a, b"attachment".to_vec()).await.unwrap();
    assert_eq!(digest, DIGEST);
    assert_eq!(blobs.put(&b, b"attachment".to_vec()).await.unwrap(), digest);
    let own = blobs.put(&a, b"only of a".to_vec()).await.unwrap();
    let file = home.location().blobs.join(&digest[..2]).join(&digest[2..]);
    assert_eq!(std::fs::read(&file).unwrap(), b"attachment");

    blobs.delete_session(&a).await.unwrap();
    assert_eq!(blobs.get(&own).await.unwrap(), None);
    assert_eq!(blobs.get(&digest).await.unwrap().unwrap(), b"attachment");
    blobs.delete_session(&b).await.unwrap();
    blobs.delete_session(&b).await.unwrap();
    assert_eq!(blobs.get(&digest).await.unwrap(), None);
    assert!(!file.exists());
}

#[tokio::test]
async fn names_that_are_no_digest_are_not_there_and_changed_content_is_told() {
    let home = Home::new();
    let blobs = FileBlobs::new(home.location().blobs);
    for name in ["", "../../etc/passwd", "ab", &"g".repeat(64), &"é".repeat(32)] {
        assert_eq!(blobs.get(name).await.unwrap(), None);
    }
    let digest = blobs.put(&session_id("a"), b"attachment".to_vec()).await.unwrap();
    std::fs::write(home.location().blobs.join(&digest[..2]).join(&digest[2..]), b"changed").unwrap();
    assert!(matches!(blobs.get(&digest).await, Err(StoreError::Corrupt(_))));
}

#[tokio::test]
async fn puts_and_deletions_at_once_never_lose_a_referred_content() {
    let home = Home::new();
    let blobs = FileBlobs::new(home.location().blobs);
    let bytes = vec![7_u8; 100_000];
    let keeper = session_id("keeper");
    let mut tasks = Vec::new();
    for number in 0..40 {
        let blobs = blobs.clone();
        let bytes = bytes.clone();
        tasks.push(tokio::spawn(async move {
            let session = session_id(&format!("{number}"));
            blobs.put(&session, bytes).await.unwrap();
            blobs.delete_session(&session).await.unwrap();
        }));
    }
    let digest = blobs.put(&keeper, bytes.clone()).await.unwrap();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(blobs.get(&digest).await.unwrap().unwrap(), bytes);
    assert_eq!(std::fs::read_dir(home.location().blobs.join("incoming")).unwrap().count(), 0);
}
