//! The files of attachments.

use attache_core::ports::store::{Blobs, StoreError};
use attache_store::FileBlobs;

use crate::fixture::*;

#[tokio::test]
async fn equal_content_is_one_file() {
    let home = Home::new();
    let blobs = FileBlobs::new(home.location().blobs);
    let (a, b) = (session_id("a"), session_id("../b"));
    let digest = blobs.put(&a, b"attachment".to_vec()).await.unwrap();
    blobs.put(&b, b"attachment".to_vec()).await.unwrap();
    let file = home.location().blobs.join(&digest[..2]).join(&digest[2..]);
    assert_eq!(std::fs::read(&file).unwrap(), b"attachment");
    blobs.delete_session(&a).await.unwrap();
    assert!(file.exists());
    blobs.delete_session(&b).await.unwrap();
    assert!(!file.exists());
}

#[tokio::test]
async fn changed_content_is_told() {
    let home = Home::new();
    let blobs = FileBlobs::new(home.location().blobs);
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
