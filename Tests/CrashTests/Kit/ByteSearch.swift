import Glibc

/// The offset of the first place from `start` on where `needle` stands in `bytes`; nil where it does not.
func firstPlace(of needle: ArraySlice<UInt8>, in bytes: [UInt8], from start: Int = 0) -> Int? {
    guard let first = needle.first, bytes.count - start >= needle.count else { return nil }
    return unsafe bytes.withUnsafeBytes { all in
        unsafe needle.withUnsafeBytes { needle in
            var at = start
            while at + needle.count <= all.count {
                let rest = all.count - at - needle.count + 1
                guard let hit = unsafe memchr(all.baseAddress! + at, CInt(first), rest) else { return nil }
                at = unsafe UnsafeRawPointer(hit) - all.baseAddress!
                if unsafe memcmp(all.baseAddress! + at, needle.baseAddress!, needle.count) == 0 { return at }
                at += 1
            }
            return nil
        }
    }
}
