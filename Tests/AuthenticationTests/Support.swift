import Message

func ip(_ text: String) -> IPAddress {
    guard let address = IPAddress(strict: text.utf8) else { preconditionFailure("\(text) is no address") }
    return address
}
