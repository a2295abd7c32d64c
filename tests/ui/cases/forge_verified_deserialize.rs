use hookgate::Verified;
use serde::Deserialize;

fn main() {
    let _forged = Verified::<Vec<u8>>::deserialize(serde_json::Value::Null);
}
