"""The signing secret of a partner and the public keys of its users, changed by its administrators."""

from litestar import get, post

from billfold.identity.partners import administration, store
from billfold.identity.partners.rules import ALGORITHMS, require_administrator
from billfold.platform.errors import NotFound
from billfold.web.console.partner import InPartner, Partner
from billfold.web.page_context import RECENT_AUTHENTICATION, FormError, PageResponse, redirect, shown_again

_PATH = "/partners/{slug:str}/credentials"


async def _show(partner: Partner, *, secret: str = "", wrong: FormError = "") -> PageResponse:
    require_administrator(partner.person, partner.page.now)
    pool, partner_id = partner.page.pool, partner.row.partner_id
    return partner.render(
        "partner_credentials",
        wrong=wrong,
        secret=secret,
        secrets=await store.list_secrets(pool, partner_id, partner.page.now),
        keys=await store.list_partner_keys(pool, partner_id),
        users=await store.list_partner_users(pool, partner_id),
        algorithms=ALGORITHMS,
        given=partner.page.form,
    )


@get(_PATH, opt=RECENT_AUTHENTICATION)
async def show_credentials(partner: InPartner) -> PageResponse:
    """Show the valid secrets and keys."""
    return await _show(partner)


@post(f"{_PATH}/secret", opt=RECENT_AUTHENTICATION)
@shown_again(_show, unless="forbidden")
async def rotate_secret(partner: InPartner) -> PageResponse:
    """Replace the signing secret and show the new one, only now."""
    number = partner.page.form.get("secret_no", "")
    return await _show(partner, secret=await administration.rotate_secret(partner.change, replaces=number))


@post(f"{_PATH}/keys", opt=RECENT_AUTHENTICATION)
@shown_again(_show, NotFound, unless="forbidden")
async def add_key(partner: InPartner) -> PageResponse:
    """Register a public key."""
    form = partner.page.form
    await administration.add_key(
        partner.change,
        form.get("username", ""),
        algorithm=form.get("algorithm", ""),
        public_pem=form.get("public_pem", "").strip(),
    )
    return redirect(f"{partner.path}/credentials", done="key-added")


@post(f"{_PATH}/keys/{{key_id:str}}/revoke", opt=RECENT_AUTHENTICATION)
async def revoke_key(partner: InPartner, key_id: str) -> PageResponse:
    """Revoke a public key."""
    await administration.revoke_key(partner.change, key_id)
    return redirect(f"{partner.path}/credentials", done="key-revoked")
