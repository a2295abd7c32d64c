use hookgate::Secret;

fn compare(left: &Secret, right: &Secret) -> bool {
    left == right
}

fn main() {}
