use hookgate::{Verified, verify::Proof};

fn forge(proof: Proof) -> Verified<&'static [u8]> {
    Verified {
        proof,
        body: b"forged",
    }
}

fn main() {}
