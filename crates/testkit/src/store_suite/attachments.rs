//! Attachments: by content, gone with the last session that refers to them.

use attache_core::ports::store::Blobs;

use super::Storage;
use super::rows::session_id;

/// SHA-256 of "attachment", from another implementation.
const DIGEST: &str = "602a5e69c3021bdbd3d25156a02d2cbb467605b8203248eea6af3fb42168d663";

pub async fn equal_content_is_kept_until_no_session_refers_to_it<S: Storage>() {
    let storage = S::create();
    let blobs = storage.blobs();
    let (a, b) = (session_id("a"), session_id("../b"));
    assert_eq!(blobs.put(&a, b"attachment".to_vec()).await.unwrap(), DIGEST);
    assert_eq!(blobs.put(&b, b"attachment".to_vec()).await.unwrap(), DIGEST);
    let own = blobs.put(&a, b"only of a".to_vec()).await.unwrap();
    assert_eq!(blobs.get(&own).await.unwrap().unwrap(), b"only of a");

    blobs.delete_session(&a).await.unwrap();
    assert_eq!(blobs.get(&own).await.unwrap(), None);
    assert_eq!(blobs.get(DIGEST).await.unwrap().unwrap(), b"attachment");
    blobs.delete_session(&b).await.unwrap();
    blobs.delete_session(&b).await.unwrap();
    assert_eq!(blobs.get(DIGEST).await.unwrap(), None);
}

pub async fn an_unknown_digest_is_not_there<S: Storage>() {
    let storage = S::create();
    let blobs = storage.blobs();
    for name in ["", "../../etc/passwd", "ab", &"g".repeat(64), &"é".repeat(32), DIGEST] {
        assert_eq!(blobs.get(name).await.unwrap(), None, "{name}");
    }
}

pub async fn what_is_shared_stays_with_the_last_who_refers_to_it<S: Storage>() {
    let storage = S::create();
    let blobs = storage.blobs();
    let (a, b) = (session_id("a"), session_id("b.snapshots"));
    blobs.share(&a, &b).await.unwrap();
    assert_eq!(blobs.bytes_of(&a).await.unwrap(), 0);
    let own = blobs.put(&a, b"attachment".to_vec()).await.unwrap();
    blobs.share(&a, &b).await.unwrap();
    assert_eq!((blobs.bytes_of(&a).await.unwrap(), blobs.bytes_of(&b).await.unwrap()), (10, 10));
    let mut owners: Vec<_> = blobs.owners().await.unwrap().into_iter().map(|owner| owner.session).collect();
    owners.sort();
    assert_eq!(owners, [a.clone(), b.clone()]);
    blobs.delete_session(&a).await.unwrap();
    assert_eq!(blobs.get(&own).await.unwrap().unwrap(), b"attachment");
    blobs.delete_session(&b).await.unwrap();
    assert_eq!(blobs.get(&own).await.unwrap(), None);
    assert_eq!(blobs.owners().await.unwrap(), []);
}
