/// Keeps secrets that travel in URIs out of the log: the values of query parameters that are credentials by name.
package enum LogScrubbing {
    /// Compared without regard to case.
    private static let secretNames = [
        "access_token", "api_key", "apikey", "auth", "code", "key", "passwd", "password", "secret", "sig", "signature",
        "token", "x-amz-credential", "x-amz-security-token", "x-amz-signature", "x-goog-signature",
    ].map { Array($0.utf8) }

    package static func append(_ target: Slice<UnsafeBufferPointer<UInt8>>, _ put: (UInt8) -> Void) {
        guard let question = unsafe target.firstIndex(of: 0x3F) else { return unsafe target.forEach(put) }
        unsafe target[...question].forEach(put)
        let parameters = unsafe target[target.index(after: question)...].split(
            separator: 0x26, omittingEmptySubsequences: false)
        for index in unsafe parameters.indices {
            if index > 0 { put(0x26) }
            unsafe append(parameter: parameters[index], put)
        }
    }

    private static func append(parameter: Slice<UnsafeBufferPointer<UInt8>>, _ put: (UInt8) -> Void) {
        guard let equals = unsafe parameter.firstIndex(of: 0x3D), unsafe isSecret(parameter[..<equals]) else {
            return unsafe parameter.forEach(put)
        }
        unsafe parameter[...equals].forEach(put)
        for byte in "***".utf8 { put(byte) }
    }

    private static func isSecret(_ name: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        secretNames.contains { secret in
            unsafe secret.count == name.count && zip(secret, name).allSatisfy { $0 == $1 | 0x20 || $0 == $1 }
        }
    }
}
