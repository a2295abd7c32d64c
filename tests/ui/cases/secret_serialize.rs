use hookgate::Secret;
use serde::Serialize;

fn serialize(secret: &Secret) {
    let _text = secret.serialize(serde_json::value::Serializer);
}

fn main() {}
