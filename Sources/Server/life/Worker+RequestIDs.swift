import Forwarding

/// The ID of a request, where it is read.
extension Worker {
    func text(of id: RequestID?) -> String? { id.map { shared.requestIDs.text(of: $0) } }
}
