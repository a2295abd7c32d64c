use hookgate::Verified;

fn main() {
    let _forged: Verified<Vec<u8>> = Default::default();
}
