import Compression

extension AdminResponse {
    /// Shorter bodies are not compressed.
    private static let compressedBytesMin = 1024

    /// The response with its body as gzip (RFC 9110 §8.4.1.3), if the client accepts that and the body gets shorter.
    func compressed(for request: AdminRequest) -> AdminResponse {
        guard request.acceptsGzip, body.count >= Self.compressedBytesMin else { return self }
        var response = self
        response.body = gzip(body)
        response.fields += [.init("Content-Encoding", "gzip"), .init("Vary", "Accept-Encoding")]
        return response
    }
}
