# pragma version ==0.4.3
"""
@title A test dollar of six decimals
@license Apache-2.0
@notice Whoever deployed it mints. It exists on local chains only.
"""

event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    value: uint256

event Approval:
    owner: indexed(address)
    spender: indexed(address)
    value: uint256

name: public(constant(String[16])) = "Test Dollar"
symbol: public(constant(String[8])) = "USDC"
decimals: public(constant(uint8)) = 6
totalSupply: public(uint256)
balanceOf: public(HashMap[address, uint256])
allowance: public(HashMap[address, HashMap[address, uint256]])
minter: public(immutable(address))
isPaused: public(bool)


@deploy
def __init__():
    minter = msg.sender


@external
def mint(receiver: address, amount: uint256) -> bool:
    assert msg.sender == minter
    self.totalSupply += amount
    self.balanceOf[receiver] += amount
    log Transfer(sender=empty(address), receiver=receiver, value=amount)
    return True


@external
def transfer(receiver: address, amount: uint256) -> bool:
    return self._move(msg.sender, receiver, amount)


@external
def transferFrom(owner: address, receiver: address, amount: uint256) -> bool:
    self.allowance[owner][msg.sender] -= amount
    return self._move(owner, receiver, amount)


@external
def approve(spender: address, amount: uint256) -> bool:
    self.allowance[msg.sender][spender] = amount
    log Approval(owner=msg.sender, spender=spender, value=amount)
    return True


@external
def pause(is_paused: bool):
    assert msg.sender == minter
    self.isPaused = is_paused


@external
def logTransfer(sender: address, receiver: address, amount: uint256):
    """
    @notice Write the log of a transfer that did not happen, as a token that lies would.
    """
    assert msg.sender == minter
    log Transfer(sender=sender, receiver=receiver, value=amount)


@internal
def _move(owner: address, receiver: address, amount: uint256) -> bool:
    assert not self.isPaused
    self.balanceOf[owner] -= amount
    self.balanceOf[receiver] += amount
    log Transfer(sender=owner, receiver=receiver, value=amount)
    return True
