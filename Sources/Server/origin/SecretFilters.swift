import Credentials
import Forwarding
import Transaction

/// Hides a secret in the content of a response.
final class SecretFilter: ContentFilter {
    private var mask: SecretMask

    init(_ mask: SecretMask) { self.mask = mask }

    func take(_ piece: UnsafeRawBufferPointer, _ pass: (UnsafeRawBufferPointer) -> Bool) -> Bool {
        unsafe send(mask.take(Array(piece)), pass)
    }

    func finish(_ pass: (UnsafeRawBufferPointer) -> Bool) -> Refusal? {
        _ = unsafe send(mask.finish(), pass)
        return nil
    }

    private func send(_ bytes: [UInt8], _ pass: (UnsafeRawBufferPointer) -> Bool) -> Bool {
        unsafe bytes.isEmpty || bytes.withUnsafeBytes { unsafe pass($0) }
    }
}

/// Keeps the content of a response that has new secrets until it is whole, and passes on what takes its place.
final class RenewalFilter: ContentFilter {
    private var bytes: [UInt8] = []
    private let renew: ([UInt8]) -> [UInt8]?

    /// - Parameter renew: returns what takes the place of the content. Nil: nothing of it may be passed on.
    init(_ renew: @escaping ([UInt8]) -> [UInt8]?) { self.renew = renew }

    func take(_ piece: UnsafeRawBufferPointer, _ pass: (UnsafeRawBufferPointer) -> Bool) -> Bool {
        guard bytes.count + piece.count <= RenewedSecrets.bytesMax else { return false }
        unsafe bytes.append(contentsOf: piece)
        return true
    }

    func finish(_ pass: (UnsafeRawBufferPointer) -> Bool) -> Refusal? {
        guard let content = renew(bytes) else { return .credentialHidden }
        if !content.isEmpty { _ = unsafe content.withUnsafeBytes { unsafe pass($0) } }
        return nil
    }
}
