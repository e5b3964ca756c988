import Glibc

/// Where the sessions of one thread put the TLS records of one call, so that all of them go out with one system call.
///
/// It is used within a call only: what the socket does not accept is copied into the session.
@safe package final class RecordBuffer {
    /// The most content of one record (RFC 8446 §5.1).
    static let contentMax = 1 << 14
    /// The most content that one call encrypts.
    static let contentOfCallMax = 256 << 10
    /// Room for the records of `contentOfCallMax`, each with at most 256 bytes around its content (RFC 8446 §5.2).
    private static let capacity = contentOfCallMax + (contentOfCallMax / contentMax + 2) * 512

    private let records: UnsafeMutableRawBufferPointer
    private(set) var count = 0
    /// The sessions that keep buffers of OpenSSL.
    var holders = BufferHolders()
    /// Pieces that are too short for a record of their own are joined here.
    let content: UnsafeMutableRawBufferPointer
    /// For the sessions inside the sessions that use this buffer.
    private(set) lazy var inner = RecordBuffer()

    package init() {
        unsafe records = .allocate(byteCount: RecordBuffer.capacity, alignment: 64)
        unsafe content = .allocate(byteCount: RecordBuffer.contentMax, alignment: 64)
    }

    deinit {
        unsafe records.deallocate()
        unsafe content.deallocate()
    }

    /// Returns false, and takes nothing, if there is no room.
    func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard unsafe bytes.count <= records.count - count else { return false }
        unsafe UnsafeMutableRawBufferPointer(rebasing: records[count...]).copyMemory(from: bytes)
        count += bytes.count
        return true
    }

    var bytes: UnsafeRawBufferPointer { unsafe UnsafeRawBufferPointer(rebasing: records[..<count]) }

    func removeAll() { count = 0 }
}
