"""Operations on cards and card orders."""
