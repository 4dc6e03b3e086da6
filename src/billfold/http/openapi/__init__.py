"""The OpenAPI documents and the HTML reference made from them."""
