/// Bytes that nobody may see by accident: a password, a token, a key, a field value that contains one.
///
/// Printing it, interpolating it and dumping it show `(secret)`. Whoever needs the bytes says so with `bytes`.
package struct Secret: Sendable {
    package let bytes: [UInt8]

    package init(_ bytes: some Sequence<UInt8>) { self.bytes = Array(bytes) }

    package init(_ text: String) { self.init(text.utf8) }
}

extension Secret: Hashable {
    /// The time that it takes does not tell where two secrets of the same length differ.
    package static func == (a: Secret, b: Secret) -> Bool { areEqualSecretly(a.bytes, b.bytes) }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "(secret)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// Whether two texts are equal. The time depends on their lengths alone.
func areEqualSecretly(_ a: [UInt8], _ b: [UInt8]) -> Bool {
    guard a.count == b.count else { return false }
    var difference: UInt8 = 0
    for index in a.indices { difference |= a[index] ^ b[index] }
    return difference == 0
}
