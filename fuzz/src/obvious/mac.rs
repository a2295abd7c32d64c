//! Signatures, as RFC 2104 and the service's specification write them down.

use sha2::{Digest, Sha256};

/// HMAC-SHA256: `H(K ^ opad, H(K ^ ipad, text))`.
fn hmac_sha256(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mut block = [0; 64];
    if key.len() > 64 {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let inner: Vec<u8> = block.map(|byte| byte ^ 0x36).into();
    let outer: Vec<u8> = block.map(|byte| byte ^ 0x5c).into();
    let digest = Sha256::digest([inner.as_slice(), text].concat());
    Sha256::digest([outer.as_slice(), &digest].concat()).into()
}

/// The header's value: over timestamp, dot and body, with the whole secret text as key.
pub fn signature(secret: &str, timestamp: &[u8], body: &[u8]) -> String {
    let signed = [timestamp, b".", body].concat();
    format!(
        "sha256={}",
        hex::encode(hmac_sha256(secret.as_bytes(), &signed))
    )
}
