use hookgate::Verified;

fn swap(verified: Verified<&'static [u8]>, body: &'static [u8]) -> Verified<&'static [u8]> {
    Verified { body, ..verified }
}

fn main() {}
